// Package login describes logins to vendors: what a person enters, and why a login is refused. Adapters determine it,
// and connect pages show it. It must not know vendors, the database, or HTML.
package login

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
	// Autocomplete is the attribute for browsers.
	Autocomplete string
	// Optional reports whether the input can be empty.
	Optional bool
}

// Sample is a value that can be entered in a field of a simulated vendor.
type Sample struct{ Label, Value string }

// Refusal is the reason why a login failed, written for the person. It must not quote the entered values.
type Refusal struct {
	// Field is the name of the wrong field. It is empty if no single field is wrong.
	Field string
	// Message is shown to the person.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return "the login was refused: " + r.Message }

// Step is the error of a login that needs more input, such as a code of a second factor. The page shows Fields, and
// then logs in again with the values of all steps. A login that refuses a value of the step fails with a Refusal, whose
// Field is in the step. The page then asks again.
type Step struct {
	// Message says what to enter, such as "Enter the code that August sent to your phone."
	Message string
	// Fields are the inputs. Their names differ from those of earlier steps.
	Fields []Field
	// Samples are the values to enter if the vendor is simulated.
	Samples []Sample
}

// Error returns a text for logs.
func (s *Step) Error() string { return "the login needs another step" }
