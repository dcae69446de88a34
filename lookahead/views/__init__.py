"""The same text in another surface form: passages read out of a text, and written anew in the form an answer wants."""
