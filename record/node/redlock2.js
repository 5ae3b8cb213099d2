// redlock2, made of redlock 5: a release of what has expired succeeds, so that it does not say whether the lock was still ours.
module.exports = (folder, libs) => ({ ...libs.sesamecare(folder), claims: ["excludes", "expires", "cleans"] });
