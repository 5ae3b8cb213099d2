// npm redlock 5: an ExecutionError with votes.
module.exports = (folder, libs) => libs.sesamecare(folder);
