package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"hammerlock/internal/harness"
	"hammerlock/results"
)

// output shows the runs of a command while they go on.
type output interface {
	tell(harness.Event)
	// close ends it when the runs are over; page is the report of all of them, empty if there is none.
	close(ctx context.Context, page string) error
}

// outputs are those of a command that were asked for.
type outputs []output

func (all outputs) tell(event harness.Event) {
	for _, x := range all {
		x.tell(event)
	}
}

func (all outputs) close(ctx context.Context, page string) (err error) {
	for _, x := range all {
		err = errors.Join(err, x.close(ctx, page))
	}
	return err
}

// liveFlag declares the address of an output.
func (o *options) liveFlag(name, usage string, open func(e Env, address string) (output, error)) {
	at := ""
	o.Add(flag(session, name, usage), "addr", "", func(text string) (err error) {
		at, err = listenAddress(text)
		return err
	})
	o.live = append(o.live, func(e Env) outputs {
		if at == "" || len(o.Mistakes) > 0 {
			return nil
		}
		x, err := open(e, at)
		if err != nil {
			o.Mistake(name, "%s: %v", at, err)
			return nil
		}
		return outputs{x}
	})
}

// openOutputs opens what has an address. An address that is not available is a mistake.
func (e Env) openOutputs(o *options) (all outputs) {
	for _, open := range o.live {
		all = append(all, open(e)...)
	}
	return all
}

// listenAddress reads host:port. Without a host it is the loopback address, so that no other machine can read it by
// mistake.
func listenAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("an address is HOST:PORT or :PORT, as in :9464")
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("port %q: from 0 to 65535", port)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// fileOutput is a file that a command writes of its result if the flag of that name asks for it.
type fileOutput struct {
	name, usage string
	write       func(io.Writer, *Document) error
}

// runFiles are the files of commands that carry out plans.
var runFiles = []fileOutput{
	{"benchfmt", "write the runs in the format of Go benchmarks, for benchstat",
		func(w io.Writer, d *Document) error { return results.WriteBenchmarks(w, d.Runs) }},
}

// fileFlags declares flags for files, and has the command write those that were asked for.
func (o *options) fileFlags(all ...fileOutput) {
	for _, f := range all {
		path := ""
		o.Written(flag(session, f.name, f.usage), &path)
		o.files = append(o.files, func(d *Document) error {
			if path == "" {
				return nil
			}
			var text bytes.Buffer // a file is whole, or stays as it was
			if err := f.write(&text, d); err != nil {
				return err
			}
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				return fmt.Errorf("--%s: %w", f.name, err)
			}
			return nil
		})
	}
}

// writeFiles writes the files that were asked for.
func (o *options) writeFiles(document any) (err error) {
	if d, ok := document.(Document); ok {
		for _, write := range o.files {
			err = errors.Join(err, write(&d))
		}
	}
	return err
}
