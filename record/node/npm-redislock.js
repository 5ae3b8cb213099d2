// npm redislock, on the client of npm redis 3: what ioredis-lock was made of.
module.exports = (folder, libs) => {
  const lib = require("./ioredis-lock.js")(folder, libs);
  return { ...lib, async open([s]) { lib.use(libs.callbackRedis(s, require("redis3"))); } };
};
