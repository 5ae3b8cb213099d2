<?php
// The protocol of docs/DRIVERS.md for drivers in PHP, which define connect(site) and serve(request), and then call main(hello). PHP does
// one thing at a time: each worker of the suite is a process of its own; the first process hands lines on and answers pings.

ini_set('display_errors', 'stderr'); // standard output belongs to the protocol

function say($out, array $m): void {
    fwrite($out, json_encode($m) . "\n");
    fflush($out);
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

// main says hello, reads requests and answers until the end of either.
function main(array $hello): void {
    say(STDOUT, ['hello' => 'hammerlock-driver', 'protocol' => 1] + $hello);
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

// release is the version of a package of Debian.
function release(string $package): string {
    return strtok((string) shell_exec("dpkg-query -W -f '\${Version}' $package"), '+~-') ?: 'unknown';
}
