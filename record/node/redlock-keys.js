// npm redlock 4 with several keys.
module.exports = (folder, libs) => libs.several(libs.redlock(folder));
