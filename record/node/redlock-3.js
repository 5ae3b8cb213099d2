// npm redlock 3: an unlock of what has expired succeeds, so that it does not say whether the lock was still ours.
module.exports = (folder, libs) => ({ ...libs.redlock(folder), claims: ["excludes", "expires", "cleans"] });
