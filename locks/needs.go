package locks

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"

	"hammerlock/topologies"
)

// Runs says whether the lock's commands are known to the server: nil, or an ErrServer that names the version it has
// and the ones it would need. A server whose version is not known is given a try.
func (s Spec) Runs(server topologies.Server) error {
	if len(s.Needs) == 0 || server == (topologies.Server{}) {
		return nil
	}
	var wants []string
	for _, r := range s.Needs {
		if r.Name == server.Name && semver.Compare("v"+server.Version, "v"+r.Since) >= 0 {
			return nil
		}
		wants = append(wants, r.Name+" "+r.Since)
	}
	return fmt.Errorf("%w: %s needs %s or newer, this is %s", ErrServer, s.Name, strings.Join(wants, ", "), server)
}
