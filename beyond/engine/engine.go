// Package engine finds servers that are not Redis on this machine, and makes topologies of one or three of them.
package engine

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Program is a server's program.
type Program struct {
	Engine    string // the server's name in locks and topologies
	Name      string // on the PATH
	Elsewhere string // pattern of the installed paths, empty = none; the last match is the newest release
	// Ask has the arguments that make the program print its version.
	Ask     []string
	Version *regexp.Regexp // finds the version in the output of Ask
}

// Find returns the program's path and version. Its error says how to install it.
func (p Program) Find(ctx context.Context) (topologies.Server, error) {
	path, err := exec.LookPath(p.Name)
	if err != nil {
		found, _ := filepath.Glob(p.Elsewhere) // the pattern is valid
		if len(found) == 0 {
			return topologies.Server{}, fmt.Errorf("no %s on this machine; to install it: make beyond-servers", p.Name)
		}
		path = found[len(found)-1]
	}
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return topologies.Server{}, err
	}
	out, err := exec.CommandContext(ctx, path, p.Ask...).Output()
	m := p.Version.FindSubmatch(out)
	if err != nil || m == nil {
		return topologies.Server{}, fmt.Errorf("%s %s printed %.60q: %w", path, strings.Join(p.Ask, " "), out, err)
	}
	return topologies.Server{Path: path, Name: p.Engine, Version: string(m[1])}, nil
}

// OneAndThree returns a topology of one server, and a topology of three servers that agree on each write by a
// protocol. The argument recovery has the recovery times of both.
func OneAndThree(e *topologies.Engine, name, protocol string, recovery [2]time.Duration) []topologies.Spec {
	return []topologies.Spec{
		e.Topology(topologies.Spec{
			Name: name, Doc: "one " + e.Name +
				" server, every write synced to the disk: no failover; what it acknowledged outlives its death",
			Nodes: 1, Recovery: recovery[0],
		}),
		e.Topology(topologies.Spec{
			Name: name + "3", Nodes: 3, Recovery: recovery[1],
			Doc: "three " + e.Name + " servers (" + protocol +
				"): a write is on the disks of a majority, which elects another leader when one dies",
		}),
	}
}
