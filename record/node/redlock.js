// npm redlock 4 and earlier.
module.exports = (folder, libs) => libs.redlock(folder);
