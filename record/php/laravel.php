<?php
// A driver for Laravel's cache lock on ext-redis. It counts leases in whole seconds, and cannot extend.
use Illuminate\Cache\PhpRedisLock;
use Illuminate\Cache\RedisLock;
use Illuminate\Redis\Connections\PhpRedisConnection;

require __DIR__ . '/../../drivers/php/driver.php';
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';

function connect(array $site): Redis {
    $redis = new Redis();
    $redis->connect($site['host'], $site['port'], 1.0, null, 0, 1.0); // the last 1.0: a read may take a second
    if (isset($site['pass'])) $redis->auth(isset($site['user']) ? [$site['user'], $site['pass']] : $site['pass']);
    $redis->select($site['db'] ?? 0);
    return $redis;
}

// serve answers a request in the process of a worker.
function serve(array $m): array {
    static $site, $connection, $holds = [];
    switch ($m['op']) {
        case 'open':
            $site = $m['sites'][0];
            break;
        case 'acquire':
            $connection ??= new PhpRedisConnection(connect($site)); // connects at the first acquire: the server may be down when the process starts
            $class = class_exists(PhpRedisLock::class) ? PhpRedisLock::class : RedisLock::class;
            $lock = new $class($connection, $m['key'], (int) ceil($m['ttl_ms'] / 1000));
            if (!$lock->acquire()) return ['busy' => true];
            $holds[$m['id']] = $lock;
            return ['ok' => true, 'token' => $lock->owner()];
        case 'extend':
            return ['unsupported' => true];
        case 'release':
            $lock = $holds[$m['hold']];
            unset($holds[$m['hold']]);
            if (!$lock->release()) return ['lost' => true];
    }
    return ['ok' => true];
}

main(['name' => 'laravel', 'version' => release('php-illuminate-cache'), 'claims' => ['excludes', 'expires', 'owned', 'cleans'],
    'topologies' => ['single'], 'lingers_ms' => 999]);
