package model

import "hammerlock/history"

// Deviation is one way in which a lock can be wrong. The glossary has its words and its remedy.
type Deviation struct {
	Name  string // a cause in package history
	Claim string // the claim in package history that it breaks
	// Keeps says that the deviation only keeps others out of the lock. Then it explains no two holders at the same
	// time, unless it ended the hold of one of them.
	Keeps bool
	// prior orders deviations that explain the same: the most usual deviation has the lowest prior. Something must
	// show a foreign release, otherwise another deviation is chosen.
	prior Cost
}

// Deviations are all that a story can contain, in the order of their priors.
var Deviations = [...]Deviation{
	falseRelease:    {history.FalseRelease, "owned", false, 1},
	doubleRelease:   {history.DoubleRelease, "owned", false, 1},
	foreignRelease:  {history.ForeignRelease, "owned", false, 2},
	silentReacquire: {history.SilentReacquire, "excludes", false, 4},
	falseExtension:  {history.FalseExtension, "excludes", false, 5},
	doubleGrant:     {history.DoubleGrant, "excludes", false, 7},
	prematureLoss:   {history.PrematureLoss, "expires", false, 14},
	falseRefusal:    {history.FalseRefusal, "owned", true, 20},
	ttlTooLong:      {history.TTLTooLong, "expires", true, 30},
	leak:            {history.Leak, "cleans", true, 50},
	phantom:         {history.Phantom, "cleans", true, 60},
}

// Priors of other events. The prior unproven is for an acquire without an answer, if only a deviation shows whether it
// was granted. The prior unheard is for a foreign release without an answer; it ranks between a false extension and a
// double grant. The prior planned is for a loss by a planned fault; it ranks between usual and rare deviations.
const unproven, unheard, planned = 12 * onePrior, 4 * onePrior, 8 * onePrior

type deviation uint8

const (
	falseRelease deviation = iota
	doubleRelease
	foreignRelease
	silentReacquire
	falseExtension
	doubleGrant
	prematureLoss
	falseRefusal
	ttlTooLong
	leak
	phantom
)

func (d deviation) cost() Cost { return oneDeviation + Deviations[d].prior*onePrior }
