package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"hammerlock/internal/cli"
)

// visitors is the number of visitors in the articles about this example. All of them come at the same time.
const visitors = 666

// row is a row of the table: a version of the service, how it runs, and the result.
type row struct {
	route     string
	guard     string
	instances int
	safe      bool // no page view may be lost

	visits                      int
	acknowledged, counted, lost int64
	exit                        int
	reason                      string
}

func rows() []row {
	return []row{
		{route: "v1", guard: "no lock", instances: 2},
		{route: "v2", guard: "a mutex in the process", instances: 2},
		{route: "v2", guard: "a mutex in the process", instances: 1, safe: true},
		{route: "v3", guard: "a lock in Redis", instances: 2, safe: true},
		{route: "v4", guard: "Redlock on five servers", instances: 2, safe: true},
	}
}

// demonstrate lets "verify http" visit the service as each row says.
func demonstrate(ctx context.Context, progress io.Writer, visits int) (all []row, err error) {
	nginx, err := findNginx()
	if err != nil {
		return nil, err
	}
	all = rows()
	for i := range all {
		r := &all[i]
		r.visits = visits
		_, _ = fmt.Fprintf(progress, "%s, %s: %d visits at once\n", r.route, human(r.instances), visits)
		if err := r.run(ctx, nginx); err != nil {
			return nil, fmt.Errorf("%s: %w", r.route, err)
		}
	}
	return all, nil
}

func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("nginx is not installed: apt-get install nginx-light")
}

// run runs "verify http", which starts the service, visits it and ends it.
func (r *row) run(ctx context.Context, nginx string) (err error) {
	dir, err := os.MkdirTemp("", "pageviews-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args, err := r.arguments(dir, nginx)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	r.exit = cli.Verify(ctx, cli.Env{Args: args, Getenv: os.Getenv, Stdout: &stdout, Stderr: &stderr})
	var d cli.Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) != 1 {
		return fmt.Errorf("verify %s: exit code %d: %s", strings.Join(args, " "), r.exit, &stderr)
	}
	views := d.Runs[0].Views
	r.acknowledged, r.counted, r.lost, r.reason = views.Acknowledged, views.Final, views.Lost, d.Exit.Reason
	return nil
}

// arguments returns the flags for "verify http": the commands that start the servers, the instances and the
// balancer, and the addresses to visit.
func (r *row) arguments(dir, nginx string) (args []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addrs, err := free(1 + 5 + r.instances + 1)
	if err != nil {
		return nil, err
	}
	store, quorum, instances, front := addrs[0], addrs[1:6], addrs[6:6+r.instances], addrs[len(addrs)-1]
	args = []string{"http", "--json", "--quiet", "--out", "results/runs", "--burst", fmt.Sprint(r.visits), "--patience",
		"1m"}
	for _, addr := range addrs[:6] {
		_, port, _ := net.SplitHostPort(addr)
		args = append(args, "--serve",
			fmt.Sprintf("exec redis-server --bind 127.0.0.1 --port %s --save '' --appendonly no --dir '%s'", port, dir))
	}
	for _, addr := range instances {
		args = append(args, "--serve", fmt.Sprintf("exec '%s' serve -listen %s -redis %s -redlock %s", self, addr,
			store, strings.Join(quorum, ",")))
	}
	if r.instances > 1 {
		conf := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(conf, []byte(balancer(dir, front, instances)), 0o644); err != nil {
			return nil, err
		}
		args = append(args, "--serve", fmt.Sprintf("exec '%s' -p '%s' -e stderr -c '%s'", nginx, dir, conf))
	} else {
		front = instances[0]
	}
	url := "http://" + front + "/" + r.route + "/pview"
	return append(args, "--visit", "POST "+url, "--count", "GET "+url), nil
}

// balancer returns the configuration of an nginx that needs no root rights and writes only into the directory dir.
func balancer(dir, front string, instances []string) string {
	return fmt.Sprintf(`daemon off;
pid '%[1]s/nginx.pid';
worker_processes 1;
worker_rlimit_nofile 4096;
events { worker_connections 2048; }
http {
	access_log off;
	client_body_temp_path '%[1]s/body';
	proxy_temp_path '%[1]s/proxy';
	fastcgi_temp_path '%[1]s/fastcgi';
	uwsgi_temp_path '%[1]s/uwsgi';
	scgi_temp_path '%[1]s/scgi';
	upstream pageviews { server %[3]s; }
	server {
		listen %[2]s backlog=1024;
		location / {
			proxy_pass http://pageviews;
			proxy_next_upstream off; # a visit that was sent again would be counted twice
			proxy_read_timeout 60s;
		}
	}
}
`, dir, front, strings.Join(instances, " max_fails=0; server ")+" max_fails=0")
}

// free returns n addresses on which no program listens.
func free(n int) (addrs []string, err error) {
	for range n {
		l, failed := net.Listen("tcp", "127.0.0.1:0")
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func human(instances int) string {
	if instances == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances behind nginx", instances)
}

// errOtherwise means that the demonstration did not show what it should.
var errOtherwise = errors.New("that is not what was to be shown")

// write prints the table. It returns an error if a safe row lost page views, or if an unsafe row lost none.
func write(w io.Writer, all []row) error {
	const line = "%-6s %-26s %-26s %8s %14s %8s %6s  %s\n"
	_, err := fmt.Fprintf(w, line, "route", "guarded by", "runs as", "visits", "acknowledged", "counted", "lost",
		"verdict")
	for _, r := range all {
		verdict := map[int]string{0: "PASS", 1: "FAIL", 3: "INCONCLUSIVE"}[r.exit]
		_, failed := fmt.Fprintf(w, line, r.route, r.guard, human(r.instances), fmt.Sprint(r.visits),
			fmt.Sprint(r.acknowledged),
			fmt.Sprint(r.counted), fmt.Sprint(r.lost), verdict)
		err = errors.Join(err, failed)
		if r.safe != (r.exit == 0) || !r.safe && r.lost == 0 {
			err = errors.Join(err, fmt.Errorf("%s, %s: exit code %d, %d lost: %w: %s", r.route, human(r.instances),
				r.exit, r.lost, errOtherwise, r.reason))
		}
	}
	return err
}
