package harness

import (
	"fmt"
	"time"

	"hammerlock/internal/human"
	"hammerlock/internal/program"
	"hammerlock/results"
)

// cutEvery is the time between two checks for new violations.
const cutEvery = time.Second

// The method cutting runs while a program is watched. Each time that new violations are found, it saves the history
// around them as a run of its own. It checks once more at the end.
func (x *Run) cutting(done <-chan struct{}) {
	t := time.NewTicker(cutEvery)
	defer t.Stop()
	for over := false; !over; {
		select {
		case <-t.C:
		case <-done:
			over = true
		}
		all := x.deployment.Program.Violated(over)
		if len(all) == 0 {
			continue
		}
		if err := x.cut(all); err != nil {
			said := fmt.Sprintf("%s: not cut out: %v", x.deployment.Program.Told(&all[0]), err)
			x.tell(Event{Stage: Running, Said: said})
		}
	}
}

// cut saves the recent history of the given locks as a separate run, and judges that run.
func (x *Run) cut(all []program.Violated) error {
	run := x.describe(time.Now())
	folder, err := results.OpenFolder(x.combo.Plan.Out, run.Name)
	if err != nil {
		return err
	}
	x.job.foundKilled(folder.Killed)
	h := x.deployment.Program.Cut(all)
	h.Name = run.Name
	run.Workers, run.Keys, run.Processes = h.Workers, h.Keys, 1
	run.Wire = fmt.Sprintf("%s, cut out of %s", human.Quantity(len(all), "lock"), x.run.Name)
	for i := range all {
		run.Seen = append(run.Seen, results.Fact{Label: "violation", Text: x.deployment.Program.Told(&all[i])})
	}
	if err = h.Save(folder.Path(results.HistoryFile)); err == nil {
		run.Verdicts, err = run.Judge(folder.Path(""))
	}
	if err != nil {
		return fmt.Errorf("%w (%v)", err, folder.Discard())
	}
	dir, err := folder.Commit(run)
	if err != nil {
		return err
	}
	x.cuts = append(x.cuts, *run)
	_, why := run.Safety()
	x.tell(Event{Stage: Running, Run: run, Folder: dir,
		Said: fmt.Sprintf("cut out: %s: %s; saved %s", x.deployment.Program.Told(&all[0]), why, dir)})
	return nil
}
