// Package login describes logins to vendors: what a person enters, and why a login is refused. Adapters determine it,
// and connect pages show it. It must not know vendors, the database, or HTML.
//
// Texts are in English. Pages translate the texts that are in their catalog of messages, and show others as they are.
package login

import "fmt"

// Field is an input of a login form.
type Field struct {
	// Name is the name of the input.
	Name string
	// Label is the text above the input.
	Label string
	// Kind is the type of the input: text, email, password or url.
	Kind string
	// Value is the initial value.
	Value string
	// Placeholder is shown while the input is empty.
	Placeholder string
	// Help is an explanation of the input.
	Help string
	// Prompt asks for the input if it is empty, such as "Enter your email address."
	Prompt string
	// Autocomplete is the attribute for browsers.
	Autocomplete string
	// Optional reports whether the input can be empty.
	Optional bool
}

// Sample says what to enter if the vendor is simulated. Its zero value says nothing.
type Sample struct {
	// Text is a sentence with a %s for each of Values, such as "Enter the code %s."
	Text string
	// Values are what to enter.
	Values []string
}

// Refusal is the reason why a login failed, written for the person. It must not quote the entered values.
type Refusal struct {
	// Field is the name of the wrong field. It is empty if no single field is wrong.
	Field string
	// Message is shown to the person. It has a verb for each of Args, as in fmt.Sprintf.
	Message string
	// Args are strings, such as the name of the vendor, and whole numbers. They are not translated.
	Args []any
}

// Error returns the message.
func (r *Refusal) Error() string { return "the login was refused: " + format(r.Message, r.Args) }

func format(message string, args []any) string {
	if len(args) == 0 {
		return message
	}
	return fmt.Sprintf(message, args...)
}

// Step is the error of a login that needs more input, such as a code of a second factor. The page shows Fields, and
// then logs in again with the values of all steps. A login that refuses a value of the step fails with a Refusal, whose
// Field is in the step. The page then asks again.
type Step struct {
	// Message says what to enter, such as "Enter the code that %s sent to your phone." It has a verb for each of Args.
	Message string
	// Args are strings and whole numbers. They are not translated.
	Args []any
	// Fields are the inputs. Their names differ from those of earlier steps.
	Fields []Field
	// Sample says what to enter if the vendor is simulated.
	Sample Sample
}

// Error returns a text for logs.
func (s *Step) Error() string { return "the login needs another step" }
