// npm redlock 5 and @sesamecare-oss/redlock with several keys.
module.exports = (folder, libs) => libs.several(libs.sesamecare(folder));
