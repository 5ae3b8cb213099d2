package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Answer says where the count is in an answer. The zero value means that the answer is nothing but a number.
type Answer struct {
	Field string         // path of a JSON field, with dots for deeper levels: data.views, pages.0
	Match *regexp.Regexp // the count is the first group, or the whole match
}

func (a *Answer) read(body []byte) (int64, error) {
	switch {
	case a.Field != "":
		return a.field(body)
	case a.Match != nil:
		m := a.Match.FindSubmatch(body)
		if m == nil {
			return 0, fmt.Errorf("the answer %.60q does not match %s", body, a.Match)
		}
		return number(string(m[min(1, len(m)-1)]))
	}
	return number(string(body))
}

func (a *Answer) field(body []byte) (int64, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var at any
	if err := d.Decode(&at); err != nil {
		return 0, fmt.Errorf("the answer %.60q is no JSON: %w", body, err)
	}
	for name := range strings.SplitSeq(a.Field, ".") {
		ok := false
		switch in := at.(type) {
		case map[string]any:
			at, ok = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if ok = err == nil && i >= 0 && i < len(in); ok {
				at = in[i]
			}
		}
		if !ok {
			return 0, fmt.Errorf("the answer %.60q has no field %s", body, a.Field)
		}
	}
	return number(fmt.Sprint(at))
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.60q: a count is a whole number; --field or --match say where it is in the answer", text)
	}
	return n, nil
}
