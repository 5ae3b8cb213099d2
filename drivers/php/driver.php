<?php
// The protocol of docs/DRIVERS.md for drivers in PHP. A driver defines connect(site) and serve(request), and then calls main(hello).
// PHP has no threads, so each worker of the suite gets its own process. The first process passes messages on and answers pings.

ini_set('display_errors', 'stderr'); // standard output is for the protocol

function say($out, array $m): void {
    fwrite($out, json_encode($m) . "\n");
    fflush($out);
}

// worker answers requests, one after another, until the first process ends.
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

// hand returns the connection to the process of a worker. It starts this process if there is none yet, and passes it the message "open".
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

// main sends the hello message. Then it passes on requests and answers until the suite or a worker's process ends.
function main(array $hello): void {
    say(STDOUT, ['hello' => 'hammerlock-driver', 'protocol' => 1] + $hello);
    $open = '';
    $of = $answers = []; // $of: workers, by the id of the acquire; $answers: connections, by worker
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

// opened answers the message "open": it tries to connect.
function opened(array $m): array {
    try {
        connect($m['sites'][0]); // only a test: each worker's process makes its own connection
        return ['ok' => true];
    } catch (Throwable $e) {
        return ['error' => $e->getMessage()];
    }
}

// release returns the version of an installed Debian package.
function release(string $package): string {
    return strtok((string) shell_exec("dpkg-query -W -f '\${Version}' $package"), '+~-') ?: 'unknown';
}
