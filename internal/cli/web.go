package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"hammerlock/internal/harness"
	"hammerlock/internal/web"
	"hammerlock/results/report"
)

func (o *options) webFlag() {
	o.add(flag{session, "web", "show the runs live on a page that is the report at the end; its address has a secret, and is printed;\n" +
		"without a host: on loopback only, as in :8080, or :0 for any free port"}, "addr", "", func(text string) (err error) {
		o.web, err = listenAddress(text)
		return err
	})
}

// livePage shows jobs on a page. It is safe on nil.
type livePage struct {
	server *web.Server
	frames
}

// openPage serves the page if there is --web; nil if not. An address that is not available is a mistake.
func (e Env) openPage(o *options) *livePage {
	if o.web == "" || len(o.mistakes) > 0 {
		return nil
	}
	s, err := web.Start(o.web)
	if err != nil {
		o.mistake("--web %s: %v", o.web, err)
		return nil
	}
	_, _ = fmt.Fprintln(e.Stderr, "live at", s.URL())
	return &livePage{server: s}
}

func (p *livePage) tell(e harness.Event) {
	if p == nil || e.Controls != nil {
		return
	}
	if e.Stage == harness.Saved {
		p.server.Saved(e.Combination.Name(), filepath.Join(e.Folder, report.File))
	}
	p.server.Publish(p.next(e))
}

// close lets the page become the report in a file.
func (p *livePage) close(ctx context.Context, file string) {
	if p != nil {
		p.server.Close(ctx, file)
	}
}
