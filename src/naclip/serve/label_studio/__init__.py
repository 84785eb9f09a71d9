"""A Label Studio ML backend beside the service's own routes: `naclip serve --label-studio`.

project   a project's label config -> the words to ask for, and where the answers belong
media     a task's image -> its bytes, from the task itself or from the one Label Studio we know
routes    /health, /setup, /predict, /versions, /webhook
"""
