package driver

import (
	"errors"
	"slices"
	"strings"
)

// Split reads a command as a shell does that knows quotes and backslashes and nothing else.
func Split(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inside, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inside, escaped = true, true
		case r == quote && quote != 0:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inside, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			inside = true
			word.WriteRune(r)
		}
	}
	if inside {
		words = append(words, word.String())
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote or a backslash is left open")
	}
	if len(words) == 0 {
		return nil, errors.New("a command, as in exec:python3 driver.py")
	}
	return words, nil
}

// Join writes a command so that Split reads it again.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; w == "" || strings.ContainsAny(w, " \t\n'\"\\,") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Environment is what a program inherits: the variables that all programs get, and those that are named.
func Environment(get func(string) string, named []string) (env []string) {
	for _, name := range slices.Concat(Inherited, named) {
		if value := get(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
