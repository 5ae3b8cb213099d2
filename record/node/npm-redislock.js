// npm redislock, the predecessor of ioredis-lock, with the client of npm redis 3.
module.exports = (folder, libs) => {
  const lib = require("./ioredis-lock.js")(folder, libs);
  return { ...lib, async open([s]) { lib.use(libs.callbackRedis(s, require("redis3"))); } };
};
