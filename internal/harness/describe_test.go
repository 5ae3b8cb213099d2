package harness

import "testing"

// TestAttachedServersKeepTheirDatabase: clients of servers that the suite starts use a special database and user.
// Clients of attached servers use those in the servers' address.
func TestAttachedServersKeepTheirDatabase(t *testing.T) {
	for _, attached := range []bool{false, true} {
		c := Combination{Topology: on("single")[0], Lock: lockNamed("lease")[0]}
		if c.Plan = Default(); attached {
			c.Plan.Attach.Addrs = []string{"127.0.0.1:1"}
		}
		o := (&Job{}).deployment(c).Options
		if own := o.Database > 0 && o.User != ""; own == attached {
			t.Errorf("attached %t: clients are sent to database %d as user %q", attached, o.Database, o.User)
		}
	}
}
