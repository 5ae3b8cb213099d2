package history

import (
	"reflect"
	"strings"
	"testing"
)

// TestClaimsAreListed checks that each field is exactly one claim of the same name.
func TestClaimsAreListed(t *testing.T) {
	byName := map[string]*Claim{}
	for i := range AllClaims {
		c := &AllClaims[i]
		if byName[c.Name] = c; c.Says == "" || c.Flag == nil && (c.Made == nil || c.Driver != "") {
			t.Errorf("%s: it says nothing, or has no field that says it", c.Name)
		}
	}
	fields := reflect.TypeFor[Claims]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		c, made := byName[name], Claims{}
		if c == nil {
			t.Errorf("the field %s is no claim", name)
			continue
		}
		field := reflect.ValueOf(&made).Elem().Field(i)
		if c.Flag == nil {
			field.SetInt(2)
		} else {
			*c.Flag(&made) = true
			if !field.Bool() {
				t.Errorf("%s sets another field", name)
			}
		}
		if none := (Claims{}); !c.Of(&made) || c.Of(&none) {
			t.Errorf("%s: made %v, of none %v", name, c.Of(&made), c.Of(&none))
		}
	}
}

// TestPermitsAndReadersExclude: a header with one of these claims need not say that the lock excludes.
func TestPermitsAndReadersExclude(t *testing.T) {
	for _, claims := range []string{`{"permits":2}`, `{"readers":true}`, `{"excludes":true}`} {
		h, err := readJSONL(strings.NewReader(`{"format":"hammerlock-history","version":1,"claims":` + claims +
			"}\n{\"end\":\"complete\",\"ops\":0}\n"))
		if err != nil || !h.Claims.Excludes {
			t.Errorf("%s: %v", claims, err)
		}
	}
}
