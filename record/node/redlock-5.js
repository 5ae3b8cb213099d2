// npm redlock 5: an ExecutionError has the votes of the sites.
module.exports = (folder, libs) => libs.sesamecare(folder);
