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
	const usage = "show the runs live on a page that is the report at the end; its address has a secret, and is " +
		"printed;\nwithout a host: on loopback only, as in :8080, or :0 for any free port"
	o.liveFlag("web", usage, func(e Env, address string) (output, error) {
		s, err := web.Start(address)
		if err == nil {
			_, _ = fmt.Fprintln(e.Stderr, "live at", s.URL())
		}
		return &livePage{server: s}, err
	})
}

// livePage shows jobs on a page.
type livePage struct {
	server *web.Server
	frames
}

func (p *livePage) tell(e harness.Event) {
	if e.Controls != nil {
		return
	}
	if e.Stage == harness.Saved {
		p.server.Saved(e.Combination.Name(), filepath.Join(e.Folder, report.File))
	}
	p.server.Publish(p.next(e))
}

// close lets the page become the report in a file.
func (p *livePage) close(ctx context.Context, file string) error {
	p.server.Close(ctx, file)
	return nil
}
