package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// OwnHost answers requests only if their Host is an IP address, localhost, or the host of the address that the server
// was told to listen on. A browser sends the name of the site that it shows: no site can read what is served here by
// having its own name resolved to this machine.
func OwnHost(listen string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := hostOf(r.Host); !isAddress(name) && name != "localhost" && name != hostOf(listen) {
			text := fmt.Sprintf("%q is no host of this server: use its IP address, or where it listens", r.Host)
			http.Error(w, text, http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf is the host of an address with or without a port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
