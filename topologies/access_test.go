package topologies

import (
	"encoding/json"
	"testing"
	"time"
)

// TestClientsOfOtherProcessesFollow sends a site's address through JSON, as to a worker process, and moves the primary.
func TestClientsOfOtherProcessesFollow(t *testing.T) {
	for _, name := range []string{"replica", "sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) {
			top := up(t, name, Options{})
			site := top.Sites[0]
			text, err := json.Marshal(site.Access())
			if err != nil {
				t.Fatal(err)
			}
			var access Access
			if err := json.Unmarshal(text, &access); err != nil {
				t.Fatal(err)
			}
			client := access.Site().Client(ClientOptions{Source: 1})
			defer func() { _ = client.Close() }()
			if err := client.Set(t.Context(), "k", "before", 0).Err(); err != nil {
				t.Fatal(err)
			}
			primary, err := site.Primary(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if err := primary.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := site.Failover(t.Context(), primary); err != nil {
				t.Fatal(err)
			}
			err = poll(t.Context(), 10*time.Millisecond, func() error { return client.Set(t.Context(), "k", "after", 0).Err() })
			if err != nil {
				t.Error(err)
			}
		})
	}
}
