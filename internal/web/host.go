package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// OwnHost answers requests only if their Host is an IP address, localhost, or the host of the listen address. Another
// site could let its own name resolve to this machine, but the browser would then send that name as the Host.
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
