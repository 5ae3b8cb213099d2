package topologies

import "testing"

// TestSettled compares the replies of sentinels with what may be believed.
func TestSettled(t *testing.T) {
	for name, c := range map[string]struct {
		flag, flags, link string
		want              bool
	}{
		"a sentinel":                     {"sentinel", "sentinel", "", true},
		"it is not heard":                {"sentinel", "s_down,sentinel", "", false},
		"it is not linked":               {"sentinel", "sentinel,disconnected", "", false},
		"what it said once":              {"sentinel", "sentinel,master_down", "", true},
		"what it said, and is not heard": {"sentinel", "s_down,sentinel,master_down", "", false},
		"a replica":                      {"slave", "slave", "ok", true},
		"a replica without its primary":  {"slave", "slave", "err", false},
		"a replica that is not heard":    {"slave", "s_down,slave", "ok", false},
		"a replica being moved":          {"slave", "slave,reconf_sent", "ok", false},
		"no flags":                       {"sentinel", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := settled(map[string]string{"flags": c.flags, "master-link-status": c.link},
				c.flag); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
