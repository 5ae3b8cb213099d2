package etcd

import "testing"

func TestAsks(t *testing.T) {
	cases := map[string]struct {
		sent string
		want bool
	}{
		"nothing":              {"", false},
		"preface and settings": {string(preface) + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", false},
		"headers":              {"\x00\x00\x02\x01\x04\x00\x00\x00\x01hh", false},
		"headers and message":  {"\x00\x00\x02\x01\x04\x00\x00\x00\x01hh\x00\x00\x01\x00\x01\x00\x00\x00\x01m", true},
		"end without message":  {"\x00\x00\x00\x00\x01\x00\x00\x00\x01", false},
		"torn":                 {"\x00\x00\x09\x01\x04\x00\x00\x00\x01h", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := asks([]byte(c.sent)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
