// The Mutex with its defaults: it refreshes its lease.
module.exports = (folder, libs) => libs.semaphore(true)(folder);
