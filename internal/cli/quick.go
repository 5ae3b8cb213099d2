package cli

import "github.com/spf13/pflag"

// quick are the settings of --quick. Any other origin of a value is stronger.
var quick = []struct{ name, value string }{{"duration", "2s"}, {"warmup", "200ms"}, {"workers", "4"}}

// quickNote says what a quick look leaves out.
const quickNote = "--quick: 2 s each with 4 workers. Rare pauses, p99.9, waiters among many workers and a steady state are not seen: " +
	"leave --quick out for numbers to keep"

func (o *options) quickFlag() {
	o.toggle(flag{session, "quick", "a first look: 2 s each, 4 workers and a short warm-up, where nothing else is said of them"}, "", &o.quick)
}

// settleQuick sets what --quick stands for.
func (o *options) settleQuick(flags *pflag.FlagSet) {
	if !o.quick {
		return
	}
	if phases := "phases"; o.origins[phases] != "" {
		o.mistake("--quick: phases say how long to measure: leave it out, or the phases")
		return
	}
	for _, s := range quick {
		if flags.Lookup(s.name) != nil && o.origins[s.name] == "" {
			o.set(s.name, entry{[]item{{s.value, "--quick"}}, "--quick"})
		}
	}
}
