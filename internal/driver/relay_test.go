package driver

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"hammerlock/topologies"
)

// TestHowAProgramReachesASite: the site has all access data, or a relay is used. Secrets are not shown.
func TestHowAProgramReachesASite(t *testing.T) {
	t.Parallel()
	security := &topologies.TLS{CA: []byte("ca"), Cert: []byte("cert"), Key: []byte("key"), ServerName: "redis.test"}
	login := topologies.Access{
		Foreign: true, User: "app", Password: "hunter2", DB: 3, Addrs: []string{"10.0.0.1:6379", "10.0.0.2:6379"},
	}
	cases := map[string]struct {
		change func(*topologies.Access)
		want   string // JSON of the site; empty = a relay is used
		refuse string
	}{
		"plain": {func(*topologies.Access) {},
			`"host":"10.0.0.1","port":6379,"user":"app","pass":"hunter2","db":3,"addrs":`, ""},
		"TLS":   {func(a *topologies.Access) { a.TLS = security }, "", ""},
		"map":   {func(a *topologies.Access) { a.Map = map[string]string{"10.0.0.1:6379": "127.0.0.1:1"} }, "", ""},
		"links": {func(a *topologies.Access) { a.Links = map[string]string{"10.0.0.1:6379": "127.0.0.1:1"} }, "", ""},
		"sentinels": {func(a *topologies.Access) {
			a.Master, a.Sentinel, a.TLS = "main", [2]string{"s", "hunter3"}, security
		},
			`"master":"main","addrs":["10.0.0.1:6379","10.0.0.2:6379"],"tls":{"ca":"ca","cert":"cert","key":"key",` +
				`"server_name":"redis.test"},"sentinel_user":"s","sentinel_pass":"hunter3"`, ""},
		"cluster": {func(a *topologies.Access) { a.Cluster, a.TLS = true, security },
			`"cluster":true,"addrs":["10.0.0.1:6379","10.0.0.2:6379"],"tls":`, ""},
		"mapped cluster": {func(a *topologies.Access) {
			a.Cluster, a.Map = true, map[string]string{"a:1": "b:1"}
		}, "", "past --map"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var p Process
			a := login
			c.change(&a)
			s, err := p.reach(t.Context(), a, 1)
			defer func() {
				for _, r := range p.relays {
					_ = r.Close()
				}
			}()
			text, _ := json.Marshal(s)
			switch {
			case c.refuse != "":
				if err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("got %v", err)
				}
				return
			case err != nil:
				t.Fatal(err)
			case c.want == "" && (len(p.relays) != 1 || !net.ParseIP(s.Host).IsLoopback() || s.TLS != nil ||
				s.User != "app"):
				t.Errorf("not by a relay: %s", text)
			case !strings.Contains(string(text), c.want):
				t.Errorf("got %s, want %s", text, c.want)
			}
			if shown := p.tail.mask(string(text)); strings.Contains(shown, "hunter") {
				t.Errorf("shows %s", shown)
			}
		})
	}
}
