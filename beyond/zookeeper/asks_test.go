package zookeeper

import "testing"

func TestAsks(t *testing.T) {
	cases := map[string]struct {
		sent string
		want bool
	}{
		"nothing":          {"", false},
		"a session, first": {"\x00\x00\x00\x2c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00", false},
		"ping":             {"\x00\x00\x00\x08\xff\xff\xff\xfe\x00\x00\x00\x0b", false},
		"create":           {"\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x01pp", true},
		"ping and then delete": {
			"\x00\x00\x00\x08\xff\xff\xff\xfe\x00\x00\x00\x0b\x00\x00\x00\x08\x00\x00\x00\x02\x00\x00\x00\x02", true,
		},
		"exists": {"\x00\x00\x00\x08\x00\x00\x00\x02\x00\x00\x00\x03", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := asks([]byte(c.sent)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
