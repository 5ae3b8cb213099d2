module.exports = (folder, libs) => libs.redisLock(folder);
