package wire

import (
	"bytes"
	"cmp"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Addresses are those of servers, and of the proxies in their place. Its methods may be called from several goroutines.
type Addresses struct {
	mu      sync.Mutex
	proxies map[string]string // by the server's address
	servers map[string]string // by the proxy's
	strange map[string]bool   // addresses that clients were told and that are neither
}

const maxStrange = 1000

// Add puts a proxy in the place of a server. Both addresses are as in replies: host:port.
func (a *Addresses) Add(server, proxy string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proxies == nil {
		a.proxies, a.servers, a.strange = map[string]string{}, map[string]string{}, map[string]bool{}
	}
	a.proxies[server], a.servers[proxy] = proxy, server
}

// direction is what addresses are made of.
type direction bool

const (
	toProxy  direction = true
	toServer direction = false
)

// leaf is a text in RESP: raw[start:end] is all of it, raw[from:to] the text.
type leaf struct{ start, from, to, end int }

// leaves finds the texts of a complete value. It is false for strings in pieces.
func leaves(raw []byte) (list []leaf, ok bool) {
	for i := 0; i < len(raw); {
		line := i + bytes.IndexByte(raw[i:], '\n')
		l := leaf{i, i + 1, max(line-1, i+1), line + 1}
		switch raw[i] {
		case '*', '~', '>', '%', '|':
			i = l.end
			continue
		case '$', '=', '!':
			n, ok := number(raw[l.from:l.to])
			if !ok {
				return nil, false
			}
			if l.from, l.to = l.end, l.end; n >= 0 {
				l.to += int(n)
				l.end = l.to + 2
			}
		case ';', '.':
			return nil, false
		}
		list = append(list, l)
		i = l.end
	}
	return list, true
}

// rewriting is a value under change.
type rewriting struct {
	*Addresses
	to      direction
	own     string // the server's own host, which stands for a missing one
	raw     []byte
	leaves  []leaf
	changed map[int]string // texts, by their leaf
	strange []string
}

// rewrite puts the addresses of proxies in the place of those of servers, or the other way round. It returns nil where
// there is nothing to change, and the addresses that clients are told for the first time and that have no proxy.
func (a *Addresses) rewrite(raw []byte, to direction, server string) (other []byte, strange []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, _, _ := net.SplitHostPort(server)
	w := &rewriting{Addresses: a, to: to, own: own, raw: raw, changed: map[int]string{}}
	if to == toServer && raw[0] != '*' {
		if text := w.text(string(raw)); text != string(raw) {
			return []byte(text), nil
		}
		return nil, nil
	}
	var ok bool
	if w.leaves, ok = leaves(raw); !ok {
		return nil, nil
	}
	for i := range w.leaves {
		w.look(i)
	}
	if len(w.changed) == 0 {
		return nil, w.strange
	}
	return w.bytes(), w.strange
}

func (w *rewriting) at(i int) string {
	if i < 0 || i >= len(w.leaves) {
		return ""
	}
	return string(w.raw[w.leaves[i].from:w.leaves[i].to])
}

// look looks for an address at a leaf: host and port as neighbours, as named fields, or in a text.
func (w *rewriting) look(i int) {
	text := w.at(i)
	if i+1 < len(w.leaves) && w.pair(i, i+1) {
		return
	}
	if text == "port" || text == "master-port" {
		for _, j := range []int{i - 2, i + 2, i + 4, i + 6, i + 8} {
			switch w.at(j) {
			case "ip", "endpoint", "hostname", "master-host":
				w.pair(j+1, i+1)
			}
		}
		return
	}
	if other := w.text(text); other != text {
		w.changed[i] = other
	}
}

// pair changes a host and a port that belong together.
func (w *rewriting) pair(host, port int) bool {
	h, p, ok := w.lookup(w.at(host), w.at(port))
	if ok {
		w.changed[host], w.changed[port] = h, p
	}
	return ok
}

// lookup finds what stands in the place of an address.
func (w *rewriting) lookup(host, port string) (h, p string, ok bool) {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", false
	}
	table, known := w.proxies, w.servers
	if w.to == toServer {
		table, known = known, table
	}
	if host == "" || host == "?" {
		host = w.own
	}
	addr := net.JoinHostPort(strings.Trim(host, "[]"), port)
	if other := table[addr]; other != "" {
		h, p, err := net.SplitHostPort(other)
		return h, p, err == nil
	}
	if w.to == toProxy && known[addr] == "" && port != "0" && net.ParseIP(host) != nil && !w.Addresses.strange[addr] &&
		len(w.Addresses.strange) < maxStrange {
		w.Addresses.strange[addr] = true
		w.strange = append(w.strange, addr)
	}
	return "", "", false
}

const separators = " ,@=\r\n"

// text changes addresses in a text: host:port, or host and port with a space between them.
func (w *rewriting) text(t string) string {
	var out strings.Builder
	for len(t) > 0 {
		end := strings.IndexAny(t, separators)
		if end < 0 {
			end = len(t)
		}
		word, rest := t[:end], t[end:]
		if i := strings.LastIndexByte(word, ':'); i >= 0 {
			if h, p, ok := w.lookup(word[:i], word[i+1:]); ok {
				word = h + ":" + p
			}
		} else if strings.HasPrefix(rest, " ") {
			next, after := rest[1:], ""
			if j := strings.IndexAny(next, separators); j >= 0 {
				next, after = next[:j], next[j:]
			}
			if h, p, ok := w.lookup(cmp.Or(word, "-"), next); ok {
				word, rest = h+" "+p, after
			}
		}
		out.WriteString(word)
		if t = rest; t != "" {
			out.WriteByte(t[0])
			t = t[1:]
		}
	}
	return out.String()
}

// bytes is the value with what was changed.
func (w *rewriting) bytes() (out []byte) {
	done := 0
	for i, l := range w.leaves {
		text, changed := w.changed[i]
		if !changed {
			continue
		}
		out = append(out, w.raw[done:l.start]...)
		done = l.end
		switch sign := w.raw[l.start]; sign {
		case '+', '-', ':':
			out = append(out, sign)
		case '_':
			sign = '$'
			fallthrough
		default:
			out = append(out, sign)
			out = strconv.AppendInt(out, int64(len(text)), 10)
			out = append(out, "\r\n"...)
		}
		out = append(out, text...)
		out = append(out, "\r\n"...)
	}
	return append(out, w.raw[done:]...)
}
