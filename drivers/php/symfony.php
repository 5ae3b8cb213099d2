<?php
// A driver for Symfony Lock's RedisStore on ext-redis (docs/DRIVERS.md). Symfony is that of composer (vendor/), or else that of the system.
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

require __DIR__ . '/driver.php';
require is_file(__DIR__ . '/vendor/autoload.php') ? __DIR__ . '/vendor/autoload.php' : 'Symfony/Component/Lock/autoload.php';

function connect(array $site): Redis {
    $redis = new Redis();
    $redis->connect($site['host'], $site['port'], 1.0, null, 0, 1.0); // the last 1.0: a read may take a second
    if (isset($site['pass'])) $redis->auth(isset($site['user']) ? [$site['user'], $site['pass']] : $site['pass']);
    $redis->select($site['db'] ?? 0);
    return $redis;
}

// serve answers a request in the process of a worker.
function serve(array $m): array {
    static $site, $factory, $holds = [];
    switch ($m['op']) {
        case 'open':
            $site = $m['sites'][0];
            break;
        case 'acquire':
            $key = new Key($m['key']);
            $factory ??= new LockFactory(new RedisStore(connect($site))); // connects at the first acquire: the server may be down when the process starts
            $lock = $factory->createLockFromKey($key, $m['ttl_ms'] / 1000, false);
            if (!$lock->acquire()) return ['busy' => true];
            $holds[$m['id']] = $lock;
            return ['ok' => true, 'token' => $key->getState(RedisStore::class)];
        case 'extend':
            try {
                $holds[$m['hold']]->refresh($m['ttl_ms'] / 1000);
            } catch (LockConflictedException $e) {
                return ['lost' => true];
            }
            break;
        case 'release': // the library does not tell whether the lock was still ours
            $lock = $holds[$m['hold']];
            unset($holds[$m['hold']]);
            $lock->release();
    }
    return ['ok' => true];
}

function version(): string {
    return class_exists('Composer\InstalledVersions') ? Composer\InstalledVersions::getPrettyVersion('symfony/lock') : release('php-symfony-lock');
}

main(['name' => 'symfony', 'version' => version(), 'claims' => ['excludes', 'expires', 'cleans'], 'topologies' => ['single', 'replica']]);
