"""``python -m anabranch``: the command line."""

from anabranch.entry import main

if __name__ == "__main__":
    main()
