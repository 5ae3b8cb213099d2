package results

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/checker"
)

// A JUnit report has a suite for each run. A suite has a case for each property that was judged.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Time     string      `xml:"time,attr"`
		Started  string      `xml:"timestamp,attr,omitempty"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the verdicts as JUnit XML. Each suite has a unique name. Inconclusive and not judged properties
// are "skipped". CI systems add up the times of a suite's cases. So the first case has the time of the whole run,
// and the other cases have no time.
func WriteJUnit(w io.Writer, all []Judgement) error {
	var report junitSuites
	seen := map[string]int{}
	for i := range all {
		j := &all[i]
		suite := junitSuite{Name: j.Name(), Time: seconds(j.Took)}
		if j.Scenario == "" && len(j.Faults) > 0 {
			// A scenario always has the same faults, so they are not named.
			suite.Name += " " + strings.Join(j.Faults, " ")
		}
		if !j.Started.IsZero() {
			suite.Started = j.Started.UTC().Format("2006-01-02T15:04:05")
		}
		if seen[suite.Name]++; seen[suite.Name] > 1 {
			suite.Name += fmt.Sprintf(" #%d", seen[suite.Name])
		}
		took := j.Took
		for _, v := range j.Verdicts {
			c := junitCase{Class: "hammerlock." + strings.ReplaceAll(j.Name(), " ", "."), Name: v.Checker,
				Output: v.Summary,
				Time:   seconds(took)}
			took = 0
			if seen[c.Class+c.Name]++; seen[c.Class+c.Name] > 1 {
				// CI systems identify a case by its name, so the name must be unique.
				c.Name += fmt.Sprintf(" #%d", seen[c.Class+c.Name])
			}
			story := strings.Join(append(slices.Clip(evidence(&v)), "repeat: "+j.Command), "\n")
			switch v.Status {
			case checker.Fail:
				c.Failure = &junitMessage{Message: v.Summary, Type: v.Cause, Text: story}
				suite.Failures++
			case checker.Inconclusive, checker.NotJudged:
				c.Skipped = &junitMessage{Message: v.Summary}
				suite.Skipped++
			}
			suite.Cases = append(suite.Cases, c)
		}
		suite.Tests = len(suite.Cases)
		report.Suites = append(report.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(report); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
