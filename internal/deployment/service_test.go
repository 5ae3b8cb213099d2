package deployment

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hammerlock/internal/service"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestAServiceThatIsNotReadySaysWhatItAnswered: the service answers the first request, and never the second. The
// error has the answer to the first, although the time limit ended the second.
func TestAServiceThatIsNotReadySaysWhatItAnswered(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			<-r.Context().Done()
			return
		}
		http.Error(w, "TypeError: no database", http.StatusInternalServerError)
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	d := Deployment{Topology: &topologies.Topology{}, Pages: workload.Pages("", 1, false)}
	err := d.ready(ctx, &service.Spec{
		Visit: service.Request{Method: "POST", URLs: []string{server.URL}},
		Count: service.Request{Method: "GET", URLs: []string{server.URL}},
	})
	if err == nil || !strings.Contains(err.Error(), `status 500 Internal Server Error: "TypeError: no database`) {
		t.Errorf("got %v", err)
	}
}
