// npm redlock 3: the unlock of an expired lock succeeds, so it does not tell whether the lock was still ours.
module.exports = (folder, libs) => ({ ...libs.redlock(folder), claims: ["excludes", "expires", "cleans"] });
