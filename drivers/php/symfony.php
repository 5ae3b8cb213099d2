<?php
// A driver for Symfony Lock's RedisStore on ext-redis (docs/DRIVERS.md). PHP does one thing at a time: each worker of the suite is
// a process of its own; the first process hands lines on and answers pings. Symfony comes from composer (vendor/) or the system.
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

ini_set('display_errors', 'stderr'); // standard output belongs to the protocol
require is_file(__DIR__ . '/vendor/autoload.php') ? __DIR__ . '/vendor/autoload.php' : 'Symfony/Component/Lock/autoload.php';

function say($out, array $m): void {
    fwrite($out, json_encode($m) . "\n");
    fflush($out);
}

function connect(array $site): Redis {
    $redis = new Redis();
    $redis->connect($site['host'], $site['port'], 1.0, null, 0, 1.0); // gives up a read after a second
    if (isset($site['pass'])) $redis->auth(isset($site['user']) ? [$site['user'], $site['pass']] : $site['pass']);
    $redis->select($site['db'] ?? 0);
    return $redis;
}

// serve is what a worker's process does with a request.
function serve(array $m): array {
    static $site, $factory, $holds = [];
    switch ($m['op']) {
        case 'open':
            $site = $m['sites'][0];
            break;
        case 'acquire':
            $key = new Key($m['key']);
            $factory ??= new LockFactory(new RedisStore(connect($site))); // a worker may be born while the server is away
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
        case 'release': // it does not say whether the lock was still ours
            $lock = $holds[$m['hold']];
            unset($holds[$m['hold']]);
            $lock->release();
    }
    return ['ok' => true];
}

// worker answers requests, one after the other, until the first process has gone.
function worker($pipe): void {
    while (($line = fgets($pipe)) !== false) {
        $m = json_decode($line, true);
        try {
            $answer = serve($m);
        } catch (Throwable $e) {
            $cause = $e->getPrevious() ?? $e;
            $answer = ['error' => get_class($e) . ': ' . $cause->getMessage()];
        }
        if ($m['op'] !== 'open') say($pipe, ['id' => $m['id']] + $answer);
    }
}

// hand leads to the process of a worker; it is started with the worker's first request, and told where the server is.
function hand(int $number, string $open) {
    static $all = [];
    if (!isset($all[$number])) {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if (pcntl_fork() === 0) {
            array_map('fclose', [$ours, ...$all]);
            worker($theirs);
            exit(0);
        }
        fclose($theirs);
        fwrite($ours, $open);
        $all[$number] = $ours;
    }
    return $all[$number];
}

// main reads requests and answers until the end of either.
function main(): void {
    $open = '';
    $of = $answers = []; // workers by the ids of their acquires, and the ways to them
    while (true) {
        $ready = ['suite' => STDIN] + $answers;
        $none = null;
        stream_select($ready, $none, $none, null);
        foreach ($ready as $from => $stream) {
            $line = fgets($stream);
            if ($line === false) exit($from === 'suite' ? 0 : 1);
            if ($from !== 'suite') {
                fwrite(STDOUT, $line);
                continue;
            }
            $m = json_decode($line, true);
            if ($m['op'] === 'open') $open = $line;
            if (in_array($m['op'], ['ping', 'cancel', 'close'])) {
                say(STDOUT, ['id' => $m['id'], 'ok' => true]);
                continue;
            }
            if ($m['op'] === 'open') {
                say(STDOUT, ['id' => $m['id']] + opened($m));
                continue;
            }
            $number = $m['worker'] ?? $of[$m['hold']];
            if ($m['op'] === 'acquire') $of[$m['id']] = $number;
            $answers[$number] = hand($number, $open);
            fwrite($answers[$number], $line);
        }
    }
}

// opened tries to connect.
function opened(array $m): array {
    try {
        connect($m['sites'][0]); // the workers' processes have connections of their own
        return ['ok' => true];
    } catch (Throwable $e) {
        return ['error' => $e->getMessage()];
    }
}

function version(): string {
    if (class_exists('Composer\InstalledVersions')) return Composer\InstalledVersions::getPrettyVersion('symfony/lock');
    return strtok((string) shell_exec("dpkg-query -W -f '\${Version}' php-symfony-lock"), '+~-') ?: 'unknown';
}

say(STDOUT, ['hello' => 'hammerlock-driver', 'protocol' => 1, 'name' => 'symfony', 'version' => version(),
    'claims' => ['excludes', 'expires', 'cleans'], 'topologies' => ['single', 'replica']]);
main();
