package driver

import (
	"errors"
	"slices"
	"strings"
)

// Split splits a command into words like a shell that supports quotes and backslashes only.
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

// Join formats words so that Split gives them back.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; w == "" || strings.ContainsAny(w, " \t\n'\"\\,") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Environment returns the environment variables of a program: those that all programs get, and the named ones.
func Environment(get func(string) string, named []string) (env []string) {
	for _, name := range slices.Concat(Inherited, named) {
		if value := get(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
