module.exports = (folder, libs) => libs.sesamecare(folder);
