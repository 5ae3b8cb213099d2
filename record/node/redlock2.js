// redlock2, a fork of redlock 5: the release of an expired lock succeeds, so it does not tell whether the lock was still ours.
module.exports = (folder, libs) => ({ ...libs.sesamecare(folder), claims: ["excludes", "expires", "cleans"] });
