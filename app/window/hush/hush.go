//go:build !headless && (cgo || ci)

// Package hush keeps Fyne's package initialisation from writing to stderr.
//
// Where LANG is C or not set, as in most hooks and services, that code logs
// "Error parsing user locale C" in every process that links it, before main
// starts. A hook's stderr can reach a model, so nod must not say things there
// that it did not mean to.
//
// This works by the order the language prescribes: packages are initialised
// sorted by import path as soon as what they import is, and this one imports
// the standard library only, while Fyne's language package waits for
// golang.org/x/text, which sorts after it. A test of the built program holds
// it in place.
package hush

import (
	"io"
	"log"
	"os"
)

var _ = func() struct{} {
	log.SetOutput(io.Discard)
	return struct{}{}
}()

// Lift gives the standard logger its voice back.
func Lift() { log.SetOutput(os.Stderr) }
