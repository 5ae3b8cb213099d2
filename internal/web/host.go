package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// OwnHost rejects requests whose Host header is neither an IP address, localhost, nor the host in the address listen.
// This protects against DNS rebinding: a foreign site may resolve its name to this machine, but the browser sends the
// foreign name as Host.
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

// hostOf returns the host of an address that may have a port.
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
