<?php
// Processes add to a number under Symfony's lock, and print how many grants and releases they counted.
require_once '/usr/share/php/Symfony/Component/Lock/autoload.php';
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

[$_, $workers, $visits] = array_map('intval', $argv);
function client() {
    $u = parse_url(getenv('REDIS_URL'));
    $r = new Redis();
    $r->connect($u['host'], $u['port']);
    if (isset($u['pass'])) {
        $r->auth(rawurldecode($u['pass']));
    }
    return $r;
}
$children = [];
for ($n = 0; $n < $workers; $n++) {
    if (($pid = pcntl_fork()) === 0) {
        $r = client();
        $factory = new LockFactory(new RedisStore($r));
        for ($i = 0; $i < $visits; $i++) {
            $lock = $factory->createLock('lock:page', 1.5);
            while (!$lock->acquire(false)) {
                usleep(2000);
            }
            $views = (int) $r->get('views:page');
            usleep(1000);
            $r->set('views:page', $views + 1);
            $lock->release();
        }
        exit(0);
    }
    $children[] = $pid;
}
foreach ($children as $pid) {
    pcntl_waitpid($pid, $status);
}
fwrite(STDERR, 'visits '.$workers * $visits.' views '.client()->get('views:page')."\n");
