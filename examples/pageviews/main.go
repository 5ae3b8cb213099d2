// Command pageviews shows why a distributed service needs a distributed lock. The service counts page views behind a
// load balancer; "pageviews serve" is one instance of it. Without an argument the command starts two instances
// behind nginx, lets "verify http" visit them, and prints a table.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pageviews:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(ctx, args[1:])
	}
	if len(args) > 0 {
		return fmt.Errorf("%q: without an argument it shows the table; serve is an instance of the service", args[0])
	}
	rows, err := demonstrate(ctx, os.Stderr, visitors)
	if err != nil {
		return err
	}
	return write(os.Stdout, rows)
}
