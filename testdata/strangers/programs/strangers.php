<?php
// Locks in the manner of public reports about PHP: strangers.php NAME is a driver of one.
require __DIR__ . '/../../../drivers/php/driver.php';

const IF_OURS = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';

function connect(array $site): Redis {
    $redis = new Redis();
    $redis->connect($site['host'], $site['port'], 1.0, null, 0, 1.0);
    if (isset($site['pass'])) $redis->auth(isset($site['user']) ? [$site['user'], $site['pass']] : $site['pass']);
    $redis->select($site['db'] ?? 0);
    return $redis;
}

abstract class Lock {
    public array $claims = ['excludes', 'expires', 'owned', 'cleans'];

    public function __construct(protected ?Redis $redis = null) {}

    abstract public function acquire(string $key, string $token, int $ttl): bool;

    public function extend(string $key, string $token, int $ttl): bool {
        return (bool) $this->redis->eval(str_replace('"DEL", KEYS[1]', '"PEXPIRE", KEYS[1], ARGV[2]', IF_OURS), [$key, $token, $ttl], 1);
    }

    public function release(string $key, string $token): bool {
        return (bool) $this->redis->eval(IF_OURS, [$key, $token], 1);
    }
}

// Right: SET NX PX, compare and delete.
class Owned extends Lock {
    public function acquire(string $key, string $token, int $ttl): bool {
        return (bool) $this->redis->set($key, $token, ['nx', 'px' => $ttl]);
    }
}

// CodeIgniter 8323. Wrong: a key without a lifetime is free, and then the lock is taken, by whoever has looked.
class SessionTTL extends Lock {
    public function acquire(string $key, string $token, int $ttl): bool {
        return $this->redis->ttl($key) <= 0 && $this->redis->psetex($key, $ttl, (string) time());
    }

    public function extend(string $key, string $token, int $ttl): bool { return $this->redis->pexpire($key, $ttl); }

    public function release(string $key, string $token): bool { return (bool) $this->redis->del($key); }
}

// laravel/framework 53342. Wrong: a run that is over removes the mutex, whoever has it by now.
class Forget extends Owned {
    public function release(string $key, string $token): bool { return (bool) $this->redis->del($key); }
}

// laravel/framework 50330. Right: first the mutex of the job, which is given back, and then that of the tick.
class OneServer extends Owned {
    public array $claims = ['excludes', 'expires', 'once'];
    protected string $job = '';

    protected function job(string $key): string { return rtrim($key, '0123456789}') . ':running'; }

    public function acquire(string $key, string $token, int $ttl): bool {
        for ($n = 0; !parent::acquire($this->job($key), $token, 1000); $n++) {
            if ($n === 200) throw new RuntimeException('the job of another tick runs for too long');
            usleep(1000);
        }
        if (parent::acquire($key, $token, $ttl)) return true;
        parent::release($this->job($key), $token);
        return false;
    }

    public function release(string $key, string $token): bool { parent::release($this->job($key), $token); return true; }
}

// laravel/framework 50330. Wrong: who has taken the tick does not run it where the job of another tick is running.
class TickFirst extends OneServer {
    public function acquire(string $key, string $token, int $ttl): bool {
        return Owned::acquire($key, $token, $ttl) && Owned::acquire($this->job($key), $token, 1000);
    }
}

const ALL = ['owned' => Owned::class, 'session-ttl' => SessionTTL::class, 'forget' => Forget::class, 'one-server' => OneServer::class,
    'tick-first' => TickFirst::class];

function serve(array $m): array {
    static $site, $lock, $holds = [];
    if ($m['op'] === 'open') {
        $site = $m['sites'][0];
        return ['ok' => true];
    }
    $lock ??= new (ALL[$GLOBALS['argv'][1]])(connect($site));
    $mine = $lock;
    $lock = null; // after an error it connects anew: a client that connects again by itself is on database 0
    $answer = answer($mine, $m, $holds);
    $lock = $mine;
    return $answer;
}

function answer(Lock $lock, array $m, array &$holds): array {
    if ($m['op'] === 'acquire') {
        $token = bin2hex(random_bytes(16));
        if (!$lock->acquire($m['key'], $token, $m['ttl_ms'])) return ['busy' => true, 'token' => $token];
        $holds[$m['id']] = [$m['key'], $token];
        return ['ok' => true, 'token' => $token];
    }
    [$key, $token] = $holds[$m['hold']];
    if ($m['op'] === 'extend') return $lock->extend($key, $token, $m['ttl_ms']) ? ['ok' => true] : ['lost' => true];
    unset($holds[$m['hold']]);
    return $lock->release($key, $token) ? ['ok' => true] : ['lost' => true];
}

$name = $argv[1] ?? '';
if (!isset(ALL[$name])) exit('strangers.php NAME, one of ' . implode(', ', array_keys(ALL)) . "\n");
main(['name' => $name, 'version' => '1', 'claims' => (new (ALL[$name]))->claims]);
