package service

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestHeaders(t *testing.T) {
	for text, c := range map[string]struct{ want, err string }{
		"X-Tenant:7":                    {"X-Tenant: 7", ""},
		" Accept: text/plain, */*":      {"Accept: text/plain, */*", ""},
		"Authorization: Bearer $TOKEN":  {"Authorization: Bearer $TOKEN", ""},
		"Authorization: Bearer hunter2": {"", "shown to everybody"},
		"X-Api-Key: hunter2":            {"", "shown to everybody"},
		"no header":                     {"", "NAME: VALUE"},
		"Bad Name: x":                   {"", "NAME: VALUE"},
		"X: a\r\nY: b":                  {"", "NAME: VALUE"},
	} {
		got, err := ParseHeader(text)
		if got != c.want || (err != nil) != (c.err != "") || err != nil &&
			(!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

// TestSecretsOfAddresses: an address that contains a secret is neither accepted nor shown.
func TestSecretsOfAddresses(t *testing.T) {
	for text, ok := range map[string]bool{
		"POST http://h/p?token=$TOKEN&page={page}": true,
		"POST http://h/p?key={page}":               true,
		"POST http://h/p?access_token=hunter2":     false,
		"POST http://app:hunter2@h/p":              false,
		"POST http://app:hunter2/@h/p":             false,
		"POST http://app:hunter2@h/%zz?x=hunter2":  false,
		"POST ftp://h/p?a=hunter2&b=hunter2":       false,
	} {
		_, err := ParseRequest(text)
		if (err == nil) != ok {
			t.Errorf("%q: got %v", text, err)
		}
		if err != nil && strings.Contains(Masked(text)+Masked(err.Error()), "hunter2") {
			t.Errorf("it is shown: %q: %v", Masked(text), Masked(err.Error()))
		}
	}
}

// TestEveryRequestHasTheHeaders: requests have the values of variables, and the record does not.
func TestEveryRequestHasTheHeaders(t *testing.T) {
	env := map[string]string{"TOKEN": "hunter2"}
	var mu sync.Mutex
	var seen []string
	var record map[string]string
	c, _ := opened(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Host, r.Header.Get("Authorization"), r.Header.Get("X-Cost"), r.URL.Query().Get("t"))
	}, func(s *Spec) {
		s.Headers = []string{"Authorization: Bearer ${TOKEN}", "X-Cost: 5$$", "Host: shop.example"}
		s.Visit.URLs[0] += "?t=$TOKEN"
		if missing := s.Resolve(func(name string) string { return env[name] }); missing != nil {
			t.Errorf("missing: %v", missing)
		}
		record = s.Settings()
	})
	if _, err := c.Visit(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if want := []string{"shop.example", "Bearer hunter2", "5$", "hunter2"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
	if record["header1"] != "Authorization: Bearer ${TOKEN}" || !strings.HasSuffix(record["visit"], "?t=$TOKEN") {
		t.Errorf("the record has %q", record)
	}
	s := Spec{Headers: []string{"Authorization: $NOBODY"}}
	if missing := s.Resolve(nil); !slices.Equal(missing, []string{"$NOBODY"}) {
		t.Errorf("missing: %v", missing)
	}
}
