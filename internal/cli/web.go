package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"hammerlock/internal/harness"
	"hammerlock/internal/web"
	"hammerlock/results/report"
)

func openPage(_ context.Context, e Env, _ *options, address string) (show, error) {
	s, err := web.Start(address)
	if err == nil {
		_, _ = fmt.Fprintln(e.Stderr, "live at", s.URL())
	}
	return &livePage{server: s}, err
}

type livePage struct {
	server *web.Server
	frames
}

func (p *livePage) tell(e harness.Event) {
	if e.Controls != nil {
		return
	}
	if e.Stage == harness.Saved && e.Folder != "" {
		p.server.Saved(e.Combination.Name(), filepath.Join(e.Folder, report.File))
	}
	p.server.Publish(p.next(e))
}

// close replaces the live page by the report in the file.
func (p *livePage) close(ctx context.Context, file string) error {
	p.server.Close(ctx, file)
	return nil
}
