package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hammerlock/internal/scripts"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"verify": main}) }

func TestScripts(t *testing.T) { scripts.Run(t) }
